pid$target::malloc:entry
