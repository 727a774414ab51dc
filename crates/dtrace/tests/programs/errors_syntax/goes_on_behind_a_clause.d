BEGIN /1 + { trace(1); }

END
{
	trace(nothing);
}
