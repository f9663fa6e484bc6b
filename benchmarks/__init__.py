"""The same work for equeue and its peers, measured side by side in one run."""
