//! Quantities of thousands of digits and exponents without end.

use crate::hostile::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-quantities",
    who: Who::Admin,
    size: Sizes { full: 20_000, ten: 200 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let digits = "9".repeat(100);
    let all = joined(size, ",", |index| {
        let quantity =
            if index.is_multiple_of(2) { "1e2147483647".to_owned() } else { format!("{digits}e-{digits}") };
        format!(r#""x.dev/r{index}":"{quantity}""#)
    });
    let more = format!(
        r#""initContainers":[{{"name":"d","image":"i","resources":{{"limits":{{{all}}},"requests":{{{}}}}}}}]"#,
        r#""cpu":"1e-2147483647""#
    );
    Request::post(PODS, JSON, pod("objects-quantities", &more))
}
