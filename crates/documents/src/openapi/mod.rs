//! The API in the words of OpenAPI, for clients that validate, explain or generate.
//!
//! In: a catalog. Out: the documents of `/openapi/v2` and `/openapi/v3`, made when they are first asked for
//! ([`kept`]), written piece by piece and kept compressed ([`packed`]). Never: a resource that is not served,
//! or a media type that is not.
//!
//! A document has [`contents`]: routes ([`builtin_routes`], [`custom_routes`]) and the definitions that they
//! need. They are written in JSON ([`json`]) or protobuf ([`proto`]). The v2 document has what other servers
//! say of theirs besides ([`part`]).

mod builtin_routes;
pub mod contents;
mod custom;
mod custom_routes;
pub mod document;
mod json;
pub mod kept;
pub mod limits;
mod media;
pub mod packed;
pub mod part;
mod path_item;
mod proto;
mod responses;
mod route;
#[cfg(test)]
mod tests;
mod verbs;

pub use kept::OpenApi;
