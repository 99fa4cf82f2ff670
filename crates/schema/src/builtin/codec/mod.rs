//! Between JSON values and the bytes that kube-apiserver would write, driven by the table.

mod text;

pub(crate) use text::go_quote;
