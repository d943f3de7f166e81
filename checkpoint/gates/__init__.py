"""What has to be asked before a step starts: policy, permission, drift, limits, time."""
