// Beside upstream's validator in its own package: what its tests ask it, and what it answers, a line each.
package cel

import (
	"context"
	"encoding/json"
	"os"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Those whose calls may cost another amount than a server's: they are not told of.
var (
	limited     = map[*Validator]bool{}
	limitedLock sync.Mutex
)

func NewValidator(s *schema.Structural, isResourceRoot bool, perCallLimit uint64) *Validator {
	found := newValidator(s, isResourceRoot, perCallLimit)
	if perCallLimit != celconfig.PerCallLimit {
		limitedLock.Lock()
		defer limitedLock.Unlock()
		limited[found] = true
	}
	return found
}

func (s *Validator) Validate(ctx context.Context, fldPath *field.Path, sts *schema.Structural, obj, oldObj interface{}, costBudget int64, opts ...Option) (field.ErrorList, int64) {
	errs, left := s.validateAll(ctx, fldPath, sts, obj, oldObj, costBudget, opts...)
	limitedLock.Lock()
	defer limitedLock.Unlock()
	if s == nil || limited[s] || ctx.Err() != nil {
		return errs, left
	}
	texts := []string{}
	for _, err := range errs {
		texts = append(texts, string(err.Type)+" "+err.Error())
	}
	line, err := json.Marshal(map[string]any{
		"schema": s.Schema.ToKubeOpenAPI(), "isRoot": s.isResourceRoot, "path": fldPath.String(), "object": obj, "old": oldObj,
		"ratchets": len(opts) > 0, "budget": costBudget, "errors": texts, "left": left,
	})
	if err != nil {
		panic(err)
	}
	out, err := os.OpenFile(os.Getenv("FOREBAY_RECORDED"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer out.Close()
	if _, err := out.Write(append(line, '\n')); err != nil {
		panic(err)
	}
	return errs, left
}
