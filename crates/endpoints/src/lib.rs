//! HTTP in and out: TLS, authentication, authorization, bodies, Status to code.
