"""A long run under faults: trains, breaks, resumes, and compares every sample with the oracle's."""
