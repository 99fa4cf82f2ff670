// Command gen writes the table of Kubernetes' built-in API types that the schema crate includes.
//
// In: the Go types of the modules named in go.mod (reflection for struct tags, their source for markers).
// Out: one text table on stdout, described in ../src/builtin/parse.rs. Facts only: names, numbers, types,
// keys, defaults; never a comment's prose.
//
// Run: go run . > ../data/builtin.txt
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	kinds := registeredKinds()
	sources, err := loadSources(modulePaths)
	if err != nil {
		log.Fatalf("reading the modules' source: %v", err)
	}
	table, err := collect(kinds, sources)
	if err != nil {
		log.Fatalf("collecting types: %v", err)
	}
	out := bufio.NewWriter(os.Stdout)
	writeHeader(out, sources)
	table.write(out)
	if err := out.Flush(); err != nil {
		log.Fatalf("writing: %v", err)
	}
	fmt.Fprintf(os.Stderr, "%d kinds, %d types, %d fields\n", len(kinds), len(table.types), table.fieldCount())
}
