//! Reactor, arrivals, connections, TLS and the load threads.
