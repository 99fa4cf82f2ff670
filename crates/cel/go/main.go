// What apiserver's own CEL environment declares and how it evaluates, for the crate beside it.
//
// `declarations` prints every function with its overloads and the version that it is there from; `evaluate` reads a case a line and answers
// with a line; `cases` prints the expressions of upstream's tests in a directory, `rules` those of CRDs
// in a file; `time` reads cases and says what an evaluation of each takes.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/google/cel-go/cel"
)

func main() {
	switch mode := os.Args[1]; mode {
	case "declarations":
		declarations()
	case "evaluate":
		each(func(c testCase) any { return evaluate(c) })
	case "cases":
		cases(os.Args[2])
	case "rules":
		rules(os.Args[2])
	case "time":
		each(func(c testCase) any { return timed(c) })
	default:
		panic("no mode " + mode)
	}
}

func each(answer func(testCase) any) {
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			return
		}
		var c testCase
		if err := json.Unmarshal(line, &c); err != nil {
			panic(err)
		}
		if err := out.Encode(answer(c)); err != nil {
			panic(err)
		}
	}
}

func environmentAt(minor uint) *cel.Env {
	env, err := environment.MustBaseEnvSet(version.MajorMinor(1, minor)).Env(environment.NewExpressions)
	if err != nil {
		panic(err)
	}
	return env
}

func timed(c testCase) any {
	program, vars, _, err := compile(c)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	runs := 1
	for {
		start := time.Now()
		for range runs {
			program.Eval(vars)
		}
		if took := time.Since(start); took > 200*time.Millisecond {
			return map[string]any{"ns": fmt.Sprint(took.Nanoseconds() / int64(runs))}
		}
		runs *= 2
	}
}
