tick-5parsecs
