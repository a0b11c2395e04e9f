"""The file format of exports: what its lines are, which are refused, how one is read whole."""
