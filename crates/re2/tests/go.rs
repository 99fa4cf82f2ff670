//! Patterns held against Go's own tests of its regexp package, which come from RE2.
//!
//! In: `re2-search.txt` of Go's source tree, if there is one. Out: the first differences. Without Go a skip
//! that is loud; the rows in `src/lib.rs` need none.

use forebay_re2::Compiled;

/// Where a match begins and ends.
type Place = Option<(usize, usize)>;

#[test]
fn what_is_found_is_what_gos_own_tests_expect() {
    let Some(rows) = rows() else {
        eprintln!("skipped: no Go here");
        return;
    };
    let (mut texts, mut in_texts) = (Vec::new(), false);
    let (mut whole, mut part, mut next) = (Compiled::unshared(""), Compiled::unshared(""), 0);
    let (mut cases, mut pattern, mut differences) = (0, String::new(), Vec::new());
    for line in rows.lines() {
        match line.as_bytes().first() {
            Some(b'"') if in_texts => texts.push(unquoted(line)),
            Some(b'"') => {
                pattern = unquoted(line);
                whole = Compiled::unshared(&format!(r"\A(?:{pattern})\z"));
                part = Compiled::unshared(&pattern);
                next = 0;
            }
            Some(b'-' | b'0'..=b'9') => {
                let text: &String = &texts[next];
                next += 1;
                // RE2 looks at bytes here; Go and we at characters. Go has no `\C` at all.
                if !text.is_ascii() && pattern.contains(r"\B") || pattern.contains(r"\C") {
                    continue;
                }
                let results: Vec<_> = line.split(';').map(place).collect();
                for (compiled, want) in [(&whole, results[0]), (&part, results[1])] {
                    cases += 1;
                    let found = found(compiled, text);
                    if found != Ok(want) {
                        differences.push(format!("{pattern:?} in {text:?}: {found:?}, not {want:?}"));
                    }
                }
            }
            _ if line == "strings" => {
                texts.clear();
                in_texts = true;
            }
            _ if line == "regexps" => in_texts = false,
            _ => {}
        }
    }
    assert!(cases > 1000, "{cases}");
    differences.truncate(20);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn rows() -> Option<String> {
    let said = std::process::Command::new("go").args(["env", "GOROOT"]).output().ok()?;
    let root = String::from_utf8(said.stdout).ok()?;
    std::fs::read_to_string(format!("{}/src/regexp/testdata/re2-search.txt", root.trim())).ok()
}

fn found(compiled: &Compiled, text: &str) -> Result<Place, String> {
    let found = compiled.find(text)?;
    assert_eq!(compiled.matches(text), Ok(found.is_some()));
    Ok(found.map(|found| {
        let from = found.as_ptr() as usize - text.as_ptr() as usize;
        (from, from + found.len())
    }))
}

/// The first pair: those behind it are of groups.
fn place(result: &str) -> Place {
    let (from, to) = result.split(' ').next()?.split_once('-')?;
    Some((from.parse().ok()?, to.parse().ok()?))
}

/// A string as Go writes it, of what these files have of that.
fn unquoted(text: &str) -> String {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).expect("quotes");
    let (mut out, mut rest) = (Vec::new(), inner);
    while let Some(at) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let escape = rest.as_bytes()[at + 1];
        rest = &rest[at + 2..];
        out.push(match escape {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'f' => 0x0c,
            b'v' => 0x0b,
            b'a' => 0x07,
            b'x' => {
                let byte = u8::from_str_radix(&rest[..2], 16).expect("two digits");
                rest = &rest[2..];
                byte
            }
            plain => plain,
        });
    }
    out.extend_from_slice(rest.as_bytes());
    String::from_utf8(out).expect("text")
}
