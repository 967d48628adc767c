"""Result files of benchmarks, and snapshots of /metrics: as measurements of one server."""
