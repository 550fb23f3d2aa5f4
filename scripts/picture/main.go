// Command picture draws captured terminal text as an SVG, so that a picture in
// the documents shows what a program printed and can be made anew.
//
//	picture [-columns N] [-title TEXT] < captured.txt > picture.svg
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	columns := flag.Int("columns", 100, "wrap lines here, as a terminal does")
	title := flag.String("title", "terminal", "text of the title bar, and for readers of the picture")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *columns, *title); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, columns int, title string) error {
	text, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err != nil {
		return err
	}
	svg, err := draw(text, columns, title)
	if err != nil {
		return err
	}
	_, err = out.Write(svg)
	return err
}
