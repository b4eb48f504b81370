"""Pure text -> structure: blocks, tables, trees (TEDS), formulas, text and the loop detector."""
