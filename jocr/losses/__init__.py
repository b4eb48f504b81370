"""Losses map tensors to (loss, metrics): no model, no input or output."""
