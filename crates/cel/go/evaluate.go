package main

import (
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

type testCase struct {
	Expr string `json:"expr"`
	// The version of the environment, 36 if none is said.
	Minor uint `json:"minor"`
	// What `self` is: a schema and a value, both as JSON.
	Schema *spec.Schema    `json:"schema"`
	Self   json.RawMessage `json:"self"`
	// Whether objects and patches of mutating policies can be spelled out.
	Mutations bool `json:"mutations"`
}

type answer struct {
	Check    string    `json:"check,omitempty"`
	Type     string    `json:"type,omitempty"`
	Estimate [2]string `json:"estimate"`
	Result   string    `json:"result,omitempty"`
	Error    string    `json:"error,omitempty"`
	Cost     string    `json:"cost,omitempty"`
}

// As the estimator of CRDs has it: sizes from the schema of `self`.
type sizes struct{ root *apiservercel.DeclType }

func (s sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	if len(element.Path()) == 0 || s.root == nil {
		return nil
	}
	// Upstream does not look at the first name either, which is `self` but for what a literal or a choice holds.
	at := s.root
	for _, name := range element.Path()[1:] {
		switch name {
		case "@items", "@values":
			at = at.ElemType
		case "@keys":
			at = at.KeyType
		default:
			field, ok := at.Fields[name]
			if !ok {
				return nil
			}
			at = field.Type
		}
		if at == nil {
			return nil
		}
	}
	return &checker.SizeEstimate{Min: 0, Max: uint64(at.MaxElements)}
}

func (s sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

func compile(c testCase) (cel.Program, map[string]any, *answer, error) {
	if c.Minor == 0 {
		c.Minor = newest
	}
	env := environmentAt(c.Minor)
	vars := map[string]any{}
	var root *apiservercel.DeclType
	options := []cel.EnvOption{}
	if c.Schema != nil {
		schema := c.Schema
		root = openapi.SchemaDeclType(schema, false).MaybeAssignTypeName("selfType")
		provider := apiservercel.NewDeclTypeProvider(root)
		provider.SetRecognizeKeywordAsFieldName(true)
		opts, err := provider.EnvOptions(env.CELTypeProvider())
		if err != nil {
			return nil, nil, nil, err
		}
		options = append(append(options, opts...), cel.Variable("self", root.CelType()))
		var self any
		// Without one it is only checked and estimated.
		if c.Self != nil {
			if err := json.Unmarshal(c.Self, &self); err != nil {
				return nil, nil, nil, err
			}
			vars["self"] = openapi.UnstructuredToVal(whole(self), schema)
		}
	} else {
		options = append(options, cel.Variable("self", cel.DynType))
		if c.Self != nil {
			var self any
			if err := json.Unmarshal(c.Self, &self); err != nil {
				return nil, nil, nil, err
			}
			vars["self"] = whole(self)
		}
	}
	if c.Mutations {
		options = append(options, common.ResolverEnvOption(&mutation.DynamicTypeResolver{}))
	}
	env, err := env.Extend(options...)
	if err != nil {
		return nil, nil, nil, err
	}
	ast, issues := env.Compile(c.Expr)
	if issues != nil && issues.Err() != nil {
		return nil, nil, &answer{Check: issues.Err().Error()}, issues.Err()
	}
	estimate, err := env.EstimateCost(ast, &library.CostEstimator{SizeEstimator: sizes{root}})
	if err != nil {
		return nil, nil, nil, err
	}
	out := &answer{Type: ast.OutputType().String(), Estimate: [2]string{fmt.Sprint(estimate.Min), fmt.Sprint(estimate.Max)}}
	program, err := env.Program(ast)
	if err != nil {
		out.Error = "program: " + err.Error()
		return nil, nil, out, err
	}
	return program, vars, out, nil
}

func evaluate(c testCase) any {
	program, vars, out, err := compile(c)
	if out == nil {
		panic(err)
	}
	if err != nil {
		return out
	}
	once(program, vars, out)
	if !strings.Contains(c.Expr, "{") {
		return out
	}
	// Entries of a map come in any order: what depends on it is not told.
	for range 24 {
		again := answer{}
		once(program, vars, &again)
		if again.Cost != out.Cost {
			out.Cost = "varies"
		}
		if again.Result != out.Result {
			out.Result = "varies"
		}
	}
	return out
}

func once(program cel.Program, vars map[string]any, out *answer) {
	value, details, err := program.Eval(vars)
	if details != nil && details.ActualCost() != nil {
		out.Cost = fmt.Sprint(*details.ActualCost())
	}
	if err != nil {
		out.Error = err.Error()
	} else {
		out.Result = shown(value)
	}
}

// Numbers as Kubernetes' decoder has them.
func whole(value any) any {
	switch value := value.(type) {
	case float64:
		if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
			return int64(value)
		}
	case []any:
		for i := range value {
			value[i] = whole(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = whole(value[key])
		}
	}
	return value
}

func shown(value ref.Val) string {
	switch value := value.(type) {
	case types.Null:
		return "null"
	case types.Bool:
		return strconv.FormatBool(bool(value))
	case types.Int:
		return strconv.FormatInt(int64(value), 10)
	case types.Uint:
		return strconv.FormatUint(uint64(value), 10) + "u"
	case types.Double:
		if math.IsNaN(float64(value)) {
			return "NaN"
		}
		return fmt.Sprintf("%016xd", math.Float64bits(float64(value)))
	case types.String:
		return quoted(string(value))
	case types.Bytes:
		return fmt.Sprintf("b%x", []byte(value))
	case types.Duration:
		return fmt.Sprintf("%dns", value.Nanoseconds())
	case types.Timestamp:
		return fmt.Sprintf("@%d.%09d", value.Unix(), value.Nanosecond())
	case *types.Type:
		return "type " + value.TypeName()
	case *types.Optional:
		if value.HasValue() {
			return "optional(" + shown(value.GetValue()) + ")"
		}
		return "none"
	case traits.Lister:
		items := []string{}
		for it := value.Iterator(); it.HasNext() == types.True; {
			items = append(items, shown(it.Next()))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case traits.Mapper:
		entries := []string{}
		for it := value.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			entries = append(entries, shown(key)+": "+shown(value.Get(key)))
		}
		sort.Strings(entries)
		return "{" + strings.Join(entries, ", ") + "}"
	}
	if text, ok := value.Value().(fmt.Stringer); ok {
		return value.Type().TypeName() + " " + text.String()
	}
	return value.Type().TypeName()
}

func quoted(text string) string {
	out, _ := json.Marshal(text)
	return string(out)
}
