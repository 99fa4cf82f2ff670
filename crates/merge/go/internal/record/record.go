// Package record writes down what upstream's code was asked and what it answered, a line of JSON each, once.
//
// It is put into a copy of structured-merge-diff, whose own tests are then run.
package record

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

var (
	lock sync.Mutex
	seen = map[string]bool{}
	file *os.File
	path = os.Getenv("RECORD_FILE")
	only = os.Getenv("RECORD_ONLY")
)

// Fields of a record.
type Fields map[string]any

// Raw is JSON as it is.
func Raw(text []byte) json.RawMessage { return json.RawMessage(text) }

// Wants says whether records of a kind are written.
func Wants(kind string) bool {
	return path != "" && (only == "" || only == kind)
}

// Direct says whether the caller of the function that calls this is a test.
func Direct() bool {
	_, name, _, ok := runtime.Caller(2)
	return ok && strings.HasSuffix(name, "_test.go")
}

// Write writes a record of a kind, unless there was the same before.
func Write(kind string, fields Fields) {
	fields["kind"] = kind
	text := Marshal(fields)
	lock.Lock()
	defer lock.Unlock()
	if seen[string(text)] {
		return
	}
	seen[string(text)] = true
	if file == nil {
		opened, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		file = opened
	}
	at := strconv.AppendQuote([]byte(`{"at":`), place())
	line := append(append(at, ','), text[1:]...)
	if _, err := file.Write(append(line, '\n')); err != nil {
		panic(err)
	}
}

// Marshal writes JSON that is not escaped for HTML.
func Marshal(what any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(what); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(out.Bytes())
}

// place is the nearest line of a test above this.
func place() string {
	callers := make([]uintptr, 256)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.File, "_test.go") {
			dir := filepath.Base(filepath.Dir(frame.File))
			return dir + "/" + filepath.Base(frame.File) + ":" + strconv.Itoa(frame.Line)
		}
		if !more {
			return "?"
		}
	}
}
