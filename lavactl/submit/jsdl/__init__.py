"""Job descriptions in JSDL 1.0, the XML language of the Open Grid Forum (bsub -jsdl, bsub -jsdl_strict)."""
