syscal::read:entry
