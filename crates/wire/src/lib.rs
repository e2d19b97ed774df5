//! Network protocols without input or output: Redis, null and the simulator.
