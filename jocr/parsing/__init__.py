"""Parse on one machine: plan the outputs, render in child processes, decode here, write one result directory."""
