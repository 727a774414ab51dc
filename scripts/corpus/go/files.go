package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

func main() {
	n := int64(0)
	filepath.WalkDir(os.Args[1], func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if f, err := os.Open(path); err == nil {
				m, _ := io.Copy(io.Discard, f)
				n += m
				f.Close()
			}
		}
		return nil
	})
	fmt.Println(n)
}
