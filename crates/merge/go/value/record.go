package value

import (
	"bytes"
	"encoding/json"
	"sort"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/internal/record"
)

// RecordJSON writes a value so that whole numbers and floats stay apart.
func RecordJSON(v Value) []byte {
	var out bytes.Buffer
	recordJSON(v, &out)
	return out.Bytes()
}

func recordString(text string, out *bytes.Buffer) {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		panic(err)
	}
	out.Truncate(out.Len() - 1)
}

func recordJSON(v Value, out *bytes.Buffer) {
	switch {
	case v == nil || v.IsNull():
		out.WriteString("null")
	case v.IsBool():
		out.WriteString(strconv.FormatBool(v.AsBool()))
	case v.IsInt():
		out.WriteString(strconv.FormatInt(v.AsInt(), 10))
	case v.IsFloat():
		text := strconv.FormatFloat(v.AsFloat(), 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		out.WriteString(text)
	case v.IsString():
		recordString(v.AsString(), out)
	case v.IsList():
		out.WriteByte('[')
		list := v.AsList()
		for i := 0; i < list.Length(); i++ {
			if i > 0 {
				out.WriteByte(',')
			}
			recordJSON(list.At(i), out)
		}
		out.WriteByte(']')
	case v.IsMap():
		members := map[string]Value{}
		names := []string{}
		v.AsMap().Iterate(func(name string, member Value) bool {
			// The value may be another one once the next comes.
			members[name] = NewValueInterface(member.Unstructured())
			names = append(names, name)
			return true
		})
		sort.Strings(names)
		out.WriteByte('{')
		for i, name := range names {
			if i > 0 {
				out.WriteByte(',')
			}
			recordString(name, out)
			out.WriteByte(':')
			recordJSON(members[name], out)
		}
		out.WriteByte('}')
	}
}

// Compare records what a test compares.
func Compare(lhs, rhs Value) int {
	result := upstreamCompare(lhs, rhs)
	if record.Wants("value") && record.Direct() {
		record.Write("value", record.Fields{
			"a": record.Raw(RecordJSON(lhs)), "b": record.Raw(RecordJSON(rhs)), "order": result,
			"texts": []string{ToString(lhs), ToString(rhs)},
		})
	}
	return result
}

// Equals records what a test compares.
func Equals(lhs, rhs Value) bool {
	result := upstreamEquals(lhs, rhs)
	if record.Wants("value") && record.Direct() {
		record.Write("value", record.Fields{
			"a": record.Raw(RecordJSON(lhs)), "b": record.Raw(RecordJSON(rhs)), "equal": result,
			"texts": []string{ToString(lhs), ToString(rhs)},
		})
	}
	return result
}
