package layout

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"
)

// The bounds of a template. It is a user's program that runs in the process of the controllers, and
// text/template can neither interrupt nor limit one: {{range 1000000000000}} would take a core for
// ever, and printf "%0999999d" the memory of the process. A run within these bounds ends in a tenth
// of a second, so that nothing has to cancel it when its object goes. No network of a server comes
// near them.
const (
	maxSteps  = 100_000      // actions, texts and values that are executed, those of a loop each time
	maxDepth  = 64           // templates that call each other
	maxText   = 64 << 10     // bytes of a text that a function makes
	maxTexts  = 1 << 20      // bytes of all of them
	maxResult = 256 << 10    // bytes of the configuration
	maxWidth  = 256          // width and precision of a verb of printf
	maxFormat = maxText * 16 // bytes that printf may need before its text is known to be short
	maxNeeds  = 256          // addresses of a server
	maxError  = 1 << 10      // bytes of a message that quotes the template
)

// limitError is the error of a template that exceeds a bound.
type limitError string

func (e limitError) Error() string { return string(e) }

// budget counts the steps and bytes that a run of a template has used.
type budget struct{ steps, depth, texts, result int }

// The functions that limit puts into a template. Its text cannot call them: it was parsed without.
const (
	stepFunction  = "_step"
	enterFunction = "_enter"
	leaveFunction = "_leave"
)

// limit makes every list of a template, such as the body of a loop, count its nodes in the budget
// before they are executed, and every template its depth. The functions of text/template that make
// texts are replaced by ones that count them.
func (b *budget) limit(t *template.Template) error {
	for _, part := range t.Templates() {
		if part.Tree == nil || part.Root == nil {
			continue
		}
		if err := count(part.Root); err != nil {
			return err
		}
		enter, err := call(enterFunction)
		if err != nil {
			return err
		}
		leave, err := call(leaveFunction)
		if err != nil {
			return err
		}
		part.Root.Nodes = append(append([]parse.Node{enter}, part.Root.Nodes...), leave)
	}
	t.Funcs(template.FuncMap{
		stepFunction: b.step,
		enterFunction: func() (string, error) {
			if b.depth++; b.depth > maxDepth {
				return "", limitError(fmt.Sprintf("more than %d templates call each other", maxDepth))
			}
			return "", nil
		},
		leaveFunction: func() string { b.depth--; return "" },
		"printf":      b.printf,
		"print":       b.text(1, fmt.Sprint),
		"println":     b.text(1, fmt.Sprintln),
		"html":        b.text(6, template.HTMLEscaper), // &#34;
		"js":          b.text(6, template.JSEscaper),   // \u003C
		"urlquery":    b.text(3, template.URLQueryEscaper),
	})
	return nil
}

// count puts a call of stepFunction in front of a list and of those within it.
func count(list *parse.ListNode) error {
	if list == nil {
		return nil
	}
	nodes := 1
	for _, n := range list.Nodes {
		nodes++
		var branch *parse.BranchNode
		switch n := n.(type) {
		case *parse.ActionNode:
			nodes += size(n.Pipe)
		case *parse.TemplateNode:
			nodes += size(n.Pipe)
		case *parse.IfNode:
			branch = &n.BranchNode
		case *parse.RangeNode:
			branch = &n.BranchNode
		case *parse.WithNode:
			branch = &n.BranchNode
		}
		if branch == nil {
			continue
		}
		nodes += size(branch.Pipe)
		if err := errors.Join(count(branch.List), count(branch.ElseList)); err != nil {
			return err
		}
	}
	step, err := call(stepFunction, nodes)
	if err != nil {
		return err
	}
	list.Nodes = append([]parse.Node{step}, list.Nodes...)
	return nil
}

// size counts the nodes of a pipeline.
func size(p *parse.PipeNode) int {
	if p == nil {
		return 0
	}
	n := 0
	for _, c := range p.Cmds {
		for _, arg := range c.Args {
			n++
			if nested, ok := arg.(*parse.PipeNode); ok {
				n += size(nested)
			}
			if chain, ok := arg.(*parse.ChainNode); ok {
				if nested, ok := chain.Node.(*parse.PipeNode); ok {
					n += size(nested)
				}
			}
		}
	}
	return n
}

// call returns the action that calls a function.
func call(function string, args ...int) (parse.Node, error) {
	text := "{{" + function
	for _, a := range args {
		text += fmt.Sprintf(" %d", a)
	}
	trees, err := parse.Parse(function, text+"}}", "", "", map[string]any{function: true})
	if err != nil {
		return nil, err
	}
	return trees[function].Root.Nodes[0], nil
}

// step counts nodes that are about to be executed.
func (b *budget) step(nodes int) (string, error) {
	if b.steps += nodes; b.steps > maxSteps {
		return "", limitError(fmt.Sprintf("it takes more than %d steps: make its loops shorter", maxSteps))
	}
	return "", nil
}

// made counts a text that a function has made.
func (b *budget) made(text string) (string, error) {
	if len(text) > maxText {
		return "", limitError(fmt.Sprintf("a text in it has more than %d bytes", maxText))
	}
	if b.texts += len(text); b.texts > maxTexts {
		return "", limitError(fmt.Sprintf("the texts that its functions make have more than %d bytes", maxTexts))
	}
	return b.step(1)
}

// textual returns a function of a template whose text is counted.
func textual[T any](b *budget, f func(T) (string, error)) func(T) (string, error) {
	return func(in T) (string, error) {
		out, err := f(in)
		if err != nil {
			return "", err
		}
		if _, err := b.made(out); err != nil {
			return "", err
		}
		return out, nil
	}
}

// text returns a function that joins its arguments to a text, each byte of which becomes times bytes
// at most.
func (b *budget) text(times int, f func(...any) string) func(...any) (string, error) {
	return func(args ...any) (string, error) {
		need := 0
		for _, a := range args {
			need += 2 + length(a)*times
		}
		if need > maxFormat {
			return "", limitError(fmt.Sprintf("a text in it has more than %d bytes", maxText))
		}
		return textual(b, func([]any) (string, error) { return f(args...), nil })(args)
	}
}

// length returns how many bytes a value has as a text, at most.
func length(v any) int {
	if s, ok := v.(string); ok {
		return len(s)
	}
	return 64 // a number, true, false or nil
}

// printf is fmt.Sprintf, for formats that need little memory: fmt pads to a million bytes.
func (b *budget) printf(format string, args ...any) (string, error) {
	verbs, err := verbsOf(format)
	if err != nil {
		return "", err
	}
	longest, sum := 0, 0
	for _, a := range args {
		longest, sum = max(longest, length(a)), sum+64+length(a)
	}
	// %[1]q prints an argument again, and a byte of it as \xff or \U0010ffff.
	if need := len(format) + sum + verbs*(10*longest+4*maxWidth); need > maxFormat {
		return "", limitError(fmt.Sprintf("printf %.20q: it may make more than %d bytes", format, maxText))
	}
	return textual(b, func(args []any) (string, error) { return fmt.Sprintf(format, args...), nil })(args)
}

// verbsOf counts the verbs of a format, and refuses widths and precisions that are large or an
// argument.
func verbsOf(format string) (verbs int, err error) {
	for {
		_, after, found := strings.Cut(format, "%")
		if !found {
			return verbs, nil
		}
		verbs++
		rest := strings.TrimLeft(after, "+-# 0123456789.[]*")
		n := 0
		for _, r := range after[:len(after)-len(rest)] {
			switch {
			case r == '*':
				return 0, limitError(`printf "%*": give the width as a number`)
			case r >= '0' && r <= '9':
				n = min(10*n+int(r-'0'), maxWidth+1)
			default:
				n = 0
			}
			if n > maxWidth {
				return 0, limitError(fmt.Sprintf(`printf "%%%.20s": widths and precisions of %d at most`, after, maxWidth))
			}
		}
		if rest != "" { // the verb, which may be a percent sign
			rest = rest[1:]
		}
		format = rest
	}
}

// limited is a writer of the result.
type limited struct {
	*budget
	bytes.Buffer
}

// Write implements io.Writer.
func (w *limited) Write(p []byte) (int, error) {
	if w.result += len(p); w.result > maxResult {
		return 0, limitError(fmt.Sprintf("the configuration has more than %d bytes", maxResult))
	}
	return w.Buffer.Write(p)
}
