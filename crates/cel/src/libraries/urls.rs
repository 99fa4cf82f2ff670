//! What is asked of URLs.

use super::function::{Context, Found, Plain, text_list, wrong};
use crate::error::Error;
use crate::objects::Object;
use crate::objects::url::{Url, read};
use crate::value::{MapKey, TextValue, Value};

pub(super) fn find(name: &str) -> Option<Plain> {
    Some(match name {
        "url" => |args, _| match args {
            [Value::String(text)] => match read(text) {
                Ok(it) => Ok(Value::object(Object::Url(it))),
                Err(why) => Err(Error::new(format!("URL parse error during conversion from string: {why}"))),
            },
            _ => wrong(),
        },
        "isURL" => |args, _| match args {
            [Value::String(text)] => Ok(Value::Bool(read(text).is_ok())),
            _ => wrong(),
        },
        "getScheme" => |args, _| on(args, |it| Value::text(it.parts.scheme.as_str())),
        "getHost" => |args, _| on(args, |it| Value::text(it.parts.host.as_str())),
        "getHostname" => |args, _| on(args, |it| Value::text(it.parts.host_and_port().0)),
        "getPort" => |args, _| on(args, |it| Value::text(it.parts.host_and_port().1)),
        "getEscapedPath" => |args, _| on(args, |it| Value::text(it.parts.escaped_path())),
        "getQuery" => |args, context| match args {
            [Value::Object(it)] => match &**it {
                Object::Url(it) => query(it, context),
                _ => wrong(),
            },
            _ => wrong(),
        },
        _ => return None,
    })
}

fn on<'a>(args: &[Value<'a>], of: for<'u> fn(&'u Url) -> Value<'a>) -> Found<'a> {
    match args {
        [Value::Object(it)] => match &**it {
            Object::Url(it) => Ok(of(it)),
            _ => wrong(),
        },
        _ => wrong(),
    }
}

fn query<'a>(url: &Url, context: &Context<'a>) -> Found<'a> {
    // Each pair is an entry, and a list with a text.
    let count = 1 + url.text.bytes().filter(|byte| *byte == b'&').count();
    context.spent().walk_all(count)?;
    context.spent().make_map(count.saturating_mul(2))?;
    let pairs = url.pairs().into_iter();
    let entries =
        pairs.map(|(key, values)| (MapKey::String(TextValue::Shared(key.into())), text_list(values)));
    Value::map(entries.collect())
}
