kernel::read:entry
