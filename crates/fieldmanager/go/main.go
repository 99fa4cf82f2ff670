// Program upstream asks Kubernetes' own packages what this crate is asked, for tests.
//
// In: the name of what is asked, and questions on standard input, a line of JSON each. Out: a line of JSON for each answer.
// It is run in a copy beside the module file of the peers that tests compare with.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// answers is where they are written.
var answers = os.Stdout

func main() {
	known := map[string]func(){"types": types, "crds": crds, "requests": requests, "scale": scales, "resets": resets, "repeats": repeats}
	answer, ok := known[os.Args[1]]
	if !ok {
		panic(fmt.Sprintf("nothing is known of %q", os.Args[1]))
	}
	answer()
}

// forEach calls answer with every question, and writes what it returns.
func forEach[Q any](answer func(Q) any) {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var question Q
		if err := json.Unmarshal(lines.Bytes(), &question); err != nil {
			panic(err)
		}
		write(answer(question))
	}
	if err := lines.Err(); err != nil {
		panic(err)
	}
}

// write writes a line of JSON that is not escaped for HTML.
func write(what any) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(what); err != nil {
		panic(err)
	}
	if _, err := answers.Write(out.Bytes()); err != nil {
		panic(err)
	}
}
