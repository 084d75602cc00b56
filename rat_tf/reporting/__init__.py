"""From run folders to tables, comparisons and figures."""
