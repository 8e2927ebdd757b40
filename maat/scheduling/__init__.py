"""The core: what decides. Pure, and blind to who asks: numpy, scipy, threadpoolctl and the standard library; it imports nothing else of Maat."""
