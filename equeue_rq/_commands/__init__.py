"""The commands, a module for each family. Importing this fills the table."""
