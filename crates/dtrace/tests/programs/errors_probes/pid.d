pid123::malloc:entry
