"""Other projects' own tests, run on this project's adapters."""
