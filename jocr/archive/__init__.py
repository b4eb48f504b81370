"""An archive parsed exactly once per page: manifest, units, commit ledger, retries and outputs. Ray lives elsewhere."""
