lockstat:::adaptive-block
