tick-0s
