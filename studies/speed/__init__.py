"""Speed and memory beside yardsticks: `make bench`."""
