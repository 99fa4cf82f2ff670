//! kubectl, as people use it: every verb that issue readers try first, on real YAML.
//!
//! In: a server shared by the file, a namespace a test. Out: transcripts equal to those of a real
//! kube-apiserver, from which they were recorded (`FOREBAY_TEST_SERVER=kube-apiserver UPDATE_EXPECT=1`).
//! Never: a description of a built-in field compared beyond its first words; ours are in words of our own.

#[path = "kubectl/mod.rs"]
mod cases;
