"""Files beside sources (image, audio, video): what they may be, how they are given, where they are kept."""
