//! `--token-auth-file`: bearer tokens and the users that they stand for.
//!
//! CSV as kube-apiserver reads it: token, user, uid, and optionally the groups in one quoted field.

use std::collections::HashMap;
use std::path::Path;

use forebay_endpoints::config::TokenUser;
use forebay_pki::private_files;

use crate::csv;
use crate::error::Error;

/// Reads the file. Of two users with one token the later one holds it; that and an empty token are warnings.
///
/// # Errors
/// The file cannot be read, is not CSV, or a line has fewer than three columns.
pub fn read(path: &Path, warnings: &mut Vec<String>) -> Result<Vec<TokenUser>, Error> {
    parse(path, &private_files::read(path)?, warnings)
}

fn parse(path: &Path, text: &str, warnings: &mut Vec<String>) -> Result<Vec<TokenUser>, Error> {
    let wrong = |line, reason: String| Error::TokenFile { path: path.to_owned(), line, reason };
    let records = csv::records(text).map_err(|bad| wrong(bad.line, bad.reason.to_owned()))?;
    let mut users: Vec<TokenUser> = Vec::with_capacity(records.len());
    // token -> place in `users`
    let mut places: HashMap<String, usize> = HashMap::with_capacity(records.len());
    for csv::Record { line, fields } in records {
        let mut fields = fields.into_iter();
        let (Some(token), Some(user), Some(uid)) = (fields.next(), fields.next(), fields.next()) else {
            return Err(wrong(line, "must have at least 3 columns (token, user name, user uid)".to_owned()));
        };
        if token.is_empty() {
            warnings.push(format!("token file {}: line {line}: empty token", path.display()));
            continue;
        }
        let groups = fields.next().map_or_else(Vec::new, |groups| {
            groups.split(',').filter(|group| !group.is_empty()).map(str::to_owned).collect()
        });
        let entry = TokenUser { token, user, uid, groups };
        if let Some(place) = places.get(&entry.token) {
            warnings.push(format!("token file {}: line {line}: duplicate token", path.display()));
            users[*place] = entry;
        } else {
            places.insert(entry.token.clone(), users.len());
            users.push(entry);
        }
    }
    Ok(users)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: &str) {
        let mut warnings = Vec::new();
        let got = match parse(Path::new("t.csv"), text, &mut warnings) {
            Ok(users) => {
                let line = |user: &TokenUser| {
                    format!("{}={}/{}/{}", user.token, user.user, user.uid, user.groups.join("+"))
                };
                users.iter().map(line).chain(warnings).collect::<Vec<_>>().join("; ")
            }
            Err(error) => format!("ERROR {}", error.line()),
        };
        assert_eq!(got, want, "{text:?}");
    }

    #[test]
    fn tokens_are_read_as_kube_apiserver_reads_them() {
        check("", "");
        check("t,u,1", "t=u/1/");
        check("t,u,1,g", "t=u/1/g");
        check("t,u,1,\"g,h\"", "t=u/1/g+h");
        check("t,u,1,\"g,h\",more", "t=u/1/g+h");
        check("t,u,1,", "t=u/1/");
        check("a,u,1\r\n\r\nb,v,2\r\n", "a=u/1/; b=v/2/");
        check("a,u,1\n,v,2\n", "a=u/1/; token file t.csv: line 2: empty token");
        check("a,u,1\nb,v,2\na,w,3\n", "a=w/3/; b=v/2/; token file t.csv: line 3: duplicate token");
    }

    #[test]
    fn a_line_that_is_no_token_is_named() {
        check(
            "t,u,1\nt,u",
            "ERROR token file t.csv: line 2: must have at least 3 columns (token, user name, user uid)",
        );
        check("\n\nt\"x,u,1", "ERROR token file t.csv: line 3: bare \" in non-quoted-field");
    }

    #[test]
    fn a_token_is_not_printed() {
        let user = TokenUser {
            token: "s3cret".to_owned(),
            user: "u".to_owned(),
            uid: String::new(),
            groups: vec![],
        };
        assert!(!format!("{user:?}").contains("s3cret"));
    }
}
