package main

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager"
)

type twice struct {
	// Custom objects are compared as they are, built-in ones as Go has them.
	Custom   bool
	New, Old map[string]any
}

// repeats writes what becomes of a new object that may differ in times only.
func repeats() {
	forEach(func(asked twice) any {
		of := objects{builtIn: !asked.Custom}
		var written runtime.Object
		written, err := fieldmanager.IgnoreManagedFieldsTimestampsTransformer(context.Background(), of.typed(asked.New), of.typed(asked.Old))
		if err != nil {
			panic(err)
		}
		text, err := json.Marshal(written)
		if err != nil {
			panic(err)
		}
		return json.RawMessage(text)
	})
}
