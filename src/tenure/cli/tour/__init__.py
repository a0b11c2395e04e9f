"""The tour that `tenure demo` and `make demo` show. Imported by nothing else."""
