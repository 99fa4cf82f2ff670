//! The API in the words of OpenAPI, for clients that validate, explain or generate.
//!
//! In: a catalog. Out: the documents of `/openapi/v2` and `/openapi/v3`. Never: a resource that is not served, or a
//! media type that is not.

mod builtin_routes;
mod contents;
mod custom;
mod custom_routes;
mod json;
mod media;
mod path_item;
#[cfg(test)]
mod peer;
mod route;
mod verbs;
