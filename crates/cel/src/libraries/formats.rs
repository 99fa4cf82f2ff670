//! What is asked of formats.

use super::function::{Found, Plain, text_list, wrong};
use crate::objects::Object;
use crate::objects::format::FORMATS;
use crate::value::Value;

pub(super) fn find(name: &str) -> Option<Plain> {
    Some(match name {
        "validate" => |args, _| match args {
            [Value::Object(it), Value::String(text)] => match &**it {
                Object::Format(it) => told((it.check)(text)),
                _ => wrong(),
            },
            _ => wrong(),
        },
        "format.named" => |args, _| match args {
            [Value::String(name)] => Value::optional(named(name)),
            _ => wrong(),
        },
        "format.dns1123Label" => |_, _| at(0),
        "format.dns1123Subdomain" => |_, _| at(1),
        "format.dns1035Label" => |_, _| at(2),
        "format.qualifiedName" => |_, _| at(3),
        "format.dns1123LabelPrefix" => |_, _| at(4),
        "format.dns1123SubdomainPrefix" => |_, _| at(5),
        "format.dns1035LabelPrefix" => |_, _| at(6),
        "format.labelValue" => |_, _| at(7),
        "format.uri" => |_, _| at(8),
        "format.uuid" => |_, _| at(9),
        "format.byte" => |_, _| at(10),
        "format.date" => |_, _| at(11),
        "format.datetime" => |_, _| at(12),
        _ => return None,
    })
}

fn at<'a>(at: usize) -> Found<'a> {
    Ok(Value::object(Object::Format(&FORMATS[at])))
}

fn named<'a>(name: &str) -> Option<Value<'a>> {
    // Few: there are 13.
    let found = FORMATS.iter().find(|it| it.key == name)?;
    Some(Value::object(Object::Format(found)))
}

fn told<'a>(wrong: Vec<String>) -> Found<'a> {
    if wrong.is_empty() { Ok(Value::Optional(None)) } else { Value::some(text_list(wrong)) }
}
