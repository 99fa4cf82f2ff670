//! JSON with gaps: what the replicas of a workload share is written once, and each pod fills in what is its
//! own.
//!
//! In: JSON with fields between `«` and `»` in its strings. Out: text with each field filled; a field whose
//! name begins with `#` loses the quotes around it. Never: a field that means two things in one object.

use serde_json::Value;

/// Text and fields by turns.
#[derive(Debug)]
pub struct Template {
    /// Before each field, and behind the last one.
    texts: Vec<String>,
    fields: Vec<String>,
}

impl Template {
    pub fn of(json: &Value) -> Template {
        let whole = json.to_string().replace("\"«#", "«#").replace("»#\"", "»");
        let mut template = Template { texts: Vec::new(), fields: Vec::new() };
        let mut rest = whole.as_str();
        while let Some((text, (field, behind))) =
            rest.split_once('«').and_then(|(text, rest)| Some((text, rest.split_once('»')?)))
        {
            template.texts.push(text.to_owned());
            template.fields.push(field.to_owned());
            rest = behind;
        }
        template.texts.push(rest.to_owned());
        template
    }

    /// The text, each field as `value` writes it.
    pub fn fill(&self, mut value: impl FnMut(&str, &mut String)) -> String {
        let mut filled = String::with_capacity(self.texts.iter().map(|text| text.len() + 48).sum());
        for (at, text) in self.texts.iter().enumerate() {
            filled.push_str(text);
            if let Some(field) = self.fields.get(at) {
                value(field, &mut filled);
            }
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_filled_where_they_stand_and_numbers_lose_their_quotes() {
        let template = Template::of(&json!({"a": "x-«name»-y", "b": "«#count»#", "c": ["«name»"]}));
        let filled = template.fill(|field, out| out.push_str(if field == "#count" { "3" } else { "n" }));
        assert_eq!(filled, r#"{"a":"x-n-y","b":3,"c":["n"]}"#);
    }

    #[test]
    fn json_without_a_field_stays_as_it_is() {
        assert_eq!(Template::of(&json!({"a": 1})).fill(|_, _| unreachable!("no field")), r#"{"a":1}"#);
    }
}
