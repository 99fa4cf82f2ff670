//! Messages by hand, and what is no message.
