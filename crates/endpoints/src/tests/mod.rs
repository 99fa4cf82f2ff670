//! Tests of the whole edge, over real sockets.

mod hostile;
