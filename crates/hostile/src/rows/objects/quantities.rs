//! Tens of thousands of quantities of a hundred digits, and an exponent without end.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-quantities",
    who: Who::Admin,
    size: Sizes { full: 15_000, ten: 200 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let digits = "9".repeat(100);
    let all = joined(size, ",", |index| {
        let quantity = if index.is_multiple_of(2) {
            format!("{digits}E")
        } else {
            format!("0.{digits}1e-{}", index % 100)
        };
        format!(r#""x.dev/r{index}":"{quantity}""#)
    });
    // The last one is so small that nobody writes it out.
    let resources = format!(r#"{{"limits":{{{all}}},"requests":{{"cpu":"1e-2147483647"}}}}"#);
    let more = format!(r#""initContainers":[{{"name":"d","image":"i","resources":{resources}}}]"#);
    Request::post(PODS, JSON, pod("objects-quantities", &more))
}
