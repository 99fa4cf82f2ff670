// Beside upstream's validation in its own package: the schemas that its tests ask about, and what it answers, a line each.
package validation

import (
	"context"
	"encoding/json"
	"os"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var recording sync.Mutex

func validateCustomResourceDefinitionValidation(ctx context.Context, given *apiextensions.CustomResourceValidation, status bool, opts validationOptions, fldPath *field.Path) field.ErrorList {
	var schema apiextensionsv1.JSONSchemaProps
	if given != nil && given.OpenAPIV3Schema != nil {
		if err := apiextensionsv1.Convert_apiextensions_JSONSchemaProps_To_v1_JSONSchemaProps(given.OpenAPIV3Schema, &schema, nil); err != nil {
			panic(err)
		}
	}
	before, err := json.Marshal(schema)
	if err != nil {
		panic(err)
	}
	errs := validateSchema(ctx, given, status, opts, fldPath)
	if given == nil || given.OpenAPIV3Schema == nil || opts.celEnvironmentSet == nil {
		return errs
	}
	texts := []string{}
	for _, err := range errs {
		texts = append(texts, string(err.Type)+" "+err.Error())
	}
	line, err := json.Marshal(map[string]any{
		"schema": json.RawMessage(before), "status": status, "path": fldPath.String(), "errors": texts,
		"rules": opts.preexistingExpressions.rules.UnsortedList(), "messages": opts.preexistingExpressions.messageExpressions.UnsortedList(),
		"unchanged": opts.suppressPerExpressionCost, "validType": opts.requireValidPropertyType, "structural": opts.requireStructuralSchema,
		"pruned": opts.requirePrunedDefaults, "atomicSet": opts.requireAtomicSetType, "listKeys": opts.requireMapListKeysMapSetValidation,
		"defaults": opts.allowDefaults,
	})
	if err != nil {
		panic(err)
	}
	recording.Lock()
	defer recording.Unlock()
	out, err := os.OpenFile(os.Getenv("FOREBAY_RECORDED"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer out.Close()
	if _, err := out.Write(append(line, '\n')); err != nil {
		panic(err)
	}
	return errs
}
