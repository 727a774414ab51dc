profile-fast
